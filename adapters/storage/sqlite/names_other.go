//go:build !linux

package sqlite

import "os"

func claim(*os.File, string) bool { return true }

func free(string) (bytes int64, ok bool) { return 0, false }
