package settings

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Kubernetes gives each container variables about the Services of its namespace. Those of a
// Service named bankingapi, or bankingapi-ops, begin like ours. The name of a setting has two
// underscores between its levels, so a name with two underscores is never one of theirs.
var clusterVariable = regexp.MustCompile(`^` + envPrefix + `(?:[A-Z0-9]+_)*?(?:(SERVICE_HOST)|(SERVICE_PORT(?:_[A-Z0-9]+)*)|PORT(?:_([0-9]+)_(TCP|UDP|SCTP)(?:_(PROTO|PORT|ADDR))?)?)$`)

// isOfCluster reports whether a variable has both the name and the form of value that Kubernetes
// gives to a variable of a Service. Another value is a setting that somebody has misspelt.
func isOfCluster(name, value string) bool {
	part := clusterVariable.FindStringSubmatch(name)
	if part == nil {
		return false
	}
	isHost := part[1] != ""
	isServicePort := part[2] != ""
	port := part[3]
	protocol := part[4]
	detail := part[5]
	switch {
	case isHost || detail == "ADDR":
		return isIP(value)
	case isServicePort:
		return isPort(value)
	case detail == "PORT":
		return value == port && isPort(value)
	case detail == "PROTO":
		return value == strings.ToLower(protocol)
	}
	scheme, address, _ := strings.Cut(value, "://")
	host, valuePort, err := net.SplitHostPort(address)
	if err != nil || !isIP(host) || !isPort(valuePort) {
		return false
	}
	if protocol == "" {
		return scheme == "tcp" || scheme == "udp" || scheme == "sctp"
	}
	return scheme == strings.ToLower(protocol) && valuePort == port
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}
