// Command bankingapi is the banking API as one program. It serves the API and has
// commands to set it up, to import and export its book, and to verify it.
//
// Data goes to standard output and everything else to standard error. The exit
// status is 0 for success, 1 for failure, 2 for wrong use (unknown commands, flags
// and arguments, and invalid settings), 3 if settle found sales that failed, and 130 if a signal ended a command.
package main

import (
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // authorities for an image without those of a system

	"bankingapi/bootstrap/parts"
	"bankingapi/cmd/bankingapi/command"
)

func main() { os.Exit(command.Main(parts.All())) }
