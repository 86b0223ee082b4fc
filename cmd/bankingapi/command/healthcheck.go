package command

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

type healthcheckCommand struct{ url optional[string] }

func (o *healthcheckCommand) flags(f *flags) {
	f.set.Var(text(&o.url), "url", "request this `address` instead of ops.address")
}

func (o *healthcheckCommand) run(c *call) error {
	ready, err := o.address(c)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(c.cmd.Context(), http.MethodGet, ready, nil)
	if err != nil || request.URL.Host == "" {
		return wrongUsef("--url must be an address like http://127.0.0.1:9464/readyz")
	}
	client := http.Client{
		Timeout:       5 * time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true}, // no proxy: the service is on this machine
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no answer from %s: %w; is the service running with this ops.address?", request.URL.Host, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
	if err != nil || len(body) == 0 {
		body = []byte(answer.Status)
	}
	return errors.New("the service is not ready: " + strings.Join(strings.Fields(string(body)), " "))
}

// address returns the URL to request. With --url the settings do not matter.
func (o *healthcheckCommand) address(c *call) (string, error) {
	if o.url.isGiven {
		return o.url.value, nil
	}
	err := c.load()
	if err != nil {
		return "", err
	}
	return readyURL(c.settings.Ops.Address)
}

// readyURL returns the URL of /readyz on this machine for a service that listens on address.
func readyURL(address string) (string, error) {
	if address == "" {
		return "", wrongUsef("ops.address is empty: set it, or use --url")
	}
	host, port, err := net.SplitHostPort(address)
	if port == "0" {
		return "", wrongUsef("ops.address has port 0, so the actual port is unknown: set a port, or use --url")
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	host = strings.ReplaceAll(host, "%", "%25") // before the zone of an IPv6 address
	return "http://" + net.JoinHostPort(host, port) + "/readyz", err
}
