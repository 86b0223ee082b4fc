package fault_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

func TestPanickedNamesTheTypeAndThePlaceOnly(t *testing.T) {
	t.Parallel()
	var err error
	func() {
		defer func() { err = fault.PanicError(recover(), debug.Stack()) }()
		panic("customer 1001")
	}()
	require.Regexp(t, `^panic of type string at fault/panic_test\.go:\d+(, [\w./]+:\d+)*$`, err.Error())

	stack := "goroutine 1 [running]:\nruntime/debug.Stack()\n\t/go/debug.go:1 +0x1\npanic({0x1001, 0x1002})\n\t/go/src/runtime/panic.go:8\nmain.f(0x1001)\n\t/home/me/storage/store.go:12 +0x1d\n"
	require.EqualError(t, fault.PanicError(7, []byte(stack)), "panic of type int at storage/store.go:12")
}
