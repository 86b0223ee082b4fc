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
	"runtime/debug"
	"syscall"
)

// gcPercent trades some tens of megabytes for most of the time that collecting
// garbage takes: the service keeps little, and throws away much.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
