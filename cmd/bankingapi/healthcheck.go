package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (p program) healthcheckCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the running service whether it is ready",
		Long: `Asks /readyz of the service that runs with the same settings; exit status 0 when it is ready,
1 when it is not or does not answer within 5 seconds. For containers, which have no curl.`,
		Example: `  bankingapi healthcheck
  bankingapi healthcheck --url http://127.0.0.1:9090/livez`,
		Args:        named(),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("url") {
				loaded, err := p.load(cmd)
				if err != nil {
					return err
				}
				if address, err = readyURL(loaded.Settings.Ops.Address); err != nil {
					return err
				}
			}
			request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, address, nil)
			if err != nil || request.URL.Host == "" {
				return wrongUsef("--url must be an address like http://127.0.0.1:9090/readyz")
			}
			return ask(request)
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "ask this `address` instead of that of ops.address")
	return cmd
}

// readyURL is where a service that listens on address can be asked from its
// own machine.
func readyURL(address string) (string, error) {
	if address == "" {
		return "", wrongUsef("ops.address is empty, so there is nobody to ask: set it, or give --url")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", wrongUsef("ops.address has port 0, so the real port is not known here: set one, or give --url")
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/readyz", nil
}

func ask(request *http.Request) error {
	client := http.Client{
		Timeout:       5 * time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true}, // and no proxy: the service is here
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	var failure *url.Error
	if errors.As(err, &failure) {
		return fmt.Errorf("no answer from %s: %w; does the service run, with this ops.address?", request.URL.Host, failure.Err)
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
	if err != nil || len(body) == 0 {
		return errors.New("the service is not ready: " + answer.Status)
	}
	return errors.New("the service is not ready: " + strings.Join(strings.Fields(string(body)), " "))
}
