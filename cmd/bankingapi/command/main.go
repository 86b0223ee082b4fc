// Package command is the command line of bankingapi. A program that embeds the
// service has the same commands if its main function calls Main with its options.
package command

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"bankingapi/bootstrap"
)

// ballastSize is the size of memory that the program allocates but never uses, so the operating
// system never provides it. The garbage collector counts it as live and waits longer between
// its runs. The service has little live memory and much garbage. Without the ballast a sale at
// 64 connections took 65 us of processor time instead of 52 (SQLite, medians of 9 runs in
// turn). A higher GOGC would use more memory for large requests: 374 MB instead of 164 MB on
// 256 connections with a hundred records each.
const ballastSize = 32 << 20

// newBallast returns nil if GOGC or GOMEMLIMIT is set, so that these work as the
// Go runtime documents them.
func newBallast(variable func(string) string) []byte {
	if variable("GOGC") != "" || variable("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, ballastSize)
}

// Main runs the command line of the process, and returns its exit status. options are the
// options of bootstrap.Open: the engines that storage.driver may name, and the additions of a
// host. Main is for main functions: it takes over SIGINT, SIGTERM, SIGHUP and SIGPIPE, and the
// process must end when it returns.
func Main(options ...bootstrap.Option) int {
	ballast := newBallast(os.Getenv)
	defer runtime.KeepAlive(ballast)
	signal.Ignore(syscall.SIGPIPE) // otherwise a command could end before it says that nobody has read a new key
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release) // a second signal ends the program at once
	p := program{os.Environ(), bootstrap.Options(options...), "/etc/bankingapi/bankingapi.yaml"}
	return p.run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
