// Command bankingapi is the banking API as one program: it serves the API and
// has everything to set it up, fill it, look after it and prove its book.
//
// Data goes to standard output and everything else to standard error. The exit
// status is 0 when it is done, 1 when it failed, and 2 for wrong use: unknown
// commands, flags and arguments, and settings that cannot be used.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// ballastSize is memory that is never touched, and so never taken from the
// machine. The collector counts it as alive and lets that much garbage gather
// before it begins: the service keeps little and throws away much, so this
// spares most of a collector's time. Where much is alive, as with large
// requests, it adds little, unlike a higher GOGC.
const ballastSize = 32 << 20

func main() {
	ballast := make([]byte, ballastSize)
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release) // a second signal ends the program at once
	status := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(status)
}
