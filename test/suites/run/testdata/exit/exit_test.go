package exit

import (
	"fmt"
	"os"
	"testing"
)

func TestExits(*testing.T) {
	fmt.Fprintln(os.Stderr, "the last words before os.Exit")
	os.Exit(3)
}
