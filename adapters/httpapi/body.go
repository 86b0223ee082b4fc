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
)

// checkMedia: the body is JSON in UTF-8, as it is.
func checkMedia(h http.Header) *problem {
	if !isJSON(h["Content-Type"]) {
		return refusal(http.StatusUnsupportedMediaType, "unsupported-media-type",
			"Content-Type must be application/json in UTF-8, or absent.").with("Accept", "application/json")
	}
	if encodings := h["Content-Encoding"]; len(encodings) > 1 || (len(encodings) == 1 && encodings[0] != "") {
		return refusal(http.StatusUnsupportedMediaType, "unsupported-content-encoding",
			"The body must have no Content-Encoding.").with("Accept-Encoding", "identity")
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
	return !given || strings.EqualFold(charset, "utf-8")
}

// drainLimit is how much of a too large body is read and thrown away, so that
// a caller who sends before it reads gets to see the answer.
const drainLimit = 16 << 20

// receive reads the body into a buffer that grows with what really came: a
// Content-Length is only a promise.
func (a *api) receive(x *exchange, r *http.Request, into *bytes.Buffer) *problem {
	var err error
	tooLarge := r.ContentLength > a.BodyLimit
	if !tooLarge {
		x.BytesIn, err = into.ReadFrom(io.LimitReader(r.Body, a.BodyLimit+1))
		tooLarge = x.BytesIn > a.BodyLimit
	}
	if tooLarge {
		// Who waits for "100 Continue" has sent nothing yet, and nobody sends
		// so much more only to be thanked: net/http closes the connection.
		if r.ContentLength <= drainLimit && r.Header["Expect"] == nil {
			_, err = io.CopyN(io.Discard, r.Body, drainLimit)
		}
		if err == nil || errors.Is(err, io.EOF) {
			return refusal(http.StatusRequestEntityTooLarge, "body-too-large",
				"The body must have at most "+strconv.FormatInt(a.BodyLimit, 10)+" bytes.")
		}
	}
	switch {
	case err == nil:
		return nil
	case isGone(r, err):
		x.abandon(err)
	}
	return refusal(http.StatusBadRequest, invalidJSON, "The body does not end where HTTP says it ends.")
}

// isGone tells a caller that cannot be answered, or was too slow, from one that
// broke the rules of HTTP.
func isGone(r *http.Request, err error) bool {
	var network net.Error // a time-out too
	return r.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}
