package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"

	"bankingapi/domain/fault"
)

// checkMedia checks that the body is JSON in UTF-8 without a content coding
// (the contract, section 1.2).
func checkMedia(h http.Header) *problem {
	if !isJSON(h["Content-Type"]) {
		return bare(http.StatusUnsupportedMediaType, fault.UnsupportedMediaType,
			"Content-Type must be application/json, with charset utf-8 or without one, or absent.").with("Accept", "application/json")
	}
	if encodings := h["Content-Encoding"]; len(encodings) > 0 && !isIdentity(encodings) {
		return bare(http.StatusUnsupportedMediaType, fault.UnsupportedContentEncoding,
			"The body must have no Content-Encoding but identity.").with("Accept-Encoding", "identity")
	}
	return nil
}

func isJSON(types []string) bool {
	switch {
	case len(types) == 0:
		return true
	case len(types) > 1:
		return false
	case types[0] == "application/json" || types[0] == "":
		return true
	}
	mediaType, parameters, err := mime.ParseMediaType(types[0])
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, given := parameters["charset"]
	return len(parameters) == 0 || given && len(parameters) == 1 && strings.EqualFold(charset, "utf-8")
}

// isIdentity reports whether every content coding is identity, which is none.
func isIdentity(encodings []string) bool {
	for coding := range strings.SplitSeq(strings.Join(encodings, ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	return true
}

// receive reads the body into a buffer that grows with the bytes that arrive: a
// Content-Length is only a promise.
func (a *api) receive(x *exchange, r *http.Request, into *bytes.Buffer) *problem {
	if r.ContentLength > a.BodyLimit {
		return tooLarge(r, a.BodyLimit)
	}
	if err := x.body.open(&a.bodies, x.Subscription, r, a.BodyLimit); err != nil {
		return noRoom(r)
	}
	var err error
	x.BytesIn, err = into.ReadFrom(&x.body)
	ofHost, isLess := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, errBodies):
		return noRoom(r)
	case isLess:
		return tooLarge(r, ofHost.Limit)
	case err != nil && isGone(r, err):
		x.abandon(err)
	case err != nil:
		p := refusal(http.StatusBadRequest, fault.InvalidJSON, "The body does not end where HTTP says it ends.")
		p.stateless = true // the whole body may be that of an earlier attempt
		return p
	case x.BytesIn > a.BodyLimit:
		return tooLarge(r, a.BodyLimit)
	}
	return nil
}

// drainLimit is how much of a body that is refused is read and dropped after the
// answer, so that a caller who sends everything before it reads sees the answer.
const drainLimit = 16 << 20

func tooLarge(r *http.Request, limit int64) *problem {
	p := bare(http.StatusRequestEntityTooLarge, fault.BodyTooLarge, "The body must have at most "+strconv.FormatInt(limit, 10)+" bytes.")
	p.unread = restOf(r)
	return p
}

// restOf returns the body whose rest is read after the answer, or nil if nothing is read. A
// caller that waits for "100 Continue" has sent nothing yet, and one that has far more to send
// is cut. HTTP/2 ends the stream, not the connection.
func restOf(r *http.Request) io.Reader {
	if r.Header["Expect"] != nil || r.ContentLength > drainLimit || r.ProtoMajor != 1 {
		return nil
	}
	return r.Body
}

// sendBeforeBody answers at once, before it reads the rest of the body.
func (x *exchange) sendBeforeBody(status int, answer []byte, body io.Reader) {
	controller := http.NewResponseController(x)
	_ = controller.EnableFullDuplex() // otherwise net/http reads the body before it sends the answer
	x.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	x.send(status, problemType, answer)
	if controller.Flush() == nil {
		_, _ = io.CopyN(io.Discard, body, drainLimit) // it was answered: an error changes nothing
	}
}

// isGone reports whether the caller has left or was too slow.
func isGone(r *http.Request, err error) bool {
	var network net.Error // a timeout too
	return r.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}
