//go:build !unix

package testdb

import "errors"

func startCluster(...string) (string, error) {
	return "", errors.New("throw-away clusters are made on Unix only")
}
