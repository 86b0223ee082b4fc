//go:build !unix

package testdb

import "errors"

var errUnix = errors.New("throw-away clusters are made on Unix only")

func startCluster(...string) (string, error) { return "", errUnix }

// StartPair returns an error.
func StartPair(...string) (primary, standby string, err error) { return "", "", errUnix }
