package fault

import (
	"fmt"
	"path"
	"strings"
)

// PanicError describes a panic by the type of its value and the source lines that
// led to it. The value and the arguments in the stack are left out, because
// they may hold what must not reach a log. The stack is that of debug.Stack.
func PanicError(value any, stack []byte) error {
	return fmt.Errorf("panic of type %T at %s", value, places(string(stack)))
}

// places are the source lines below the panic in a stack: package/file.go:12.
func places(stack string) string {
	const most = 8
	var found []string
	_, below, _ := strings.Cut(stack, "\npanic(")
	for line := range strings.Lines(below) {
		file, isPlace := strings.CutPrefix(line, "\t")
		file, _, _ = strings.Cut(file, " ")
		name := path.Join(path.Base(path.Dir(file)), path.Base(file))
		if isPlace && len(found) < most && !strings.HasPrefix(name, "runtime/") {
			found = append(found, strings.TrimSpace(name))
		}
	}
	return strings.Join(found, ", ")
}
