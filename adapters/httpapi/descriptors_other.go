//go:build !linux && !darwin

package httpapi

// descriptors returns false: this system has no limit that matters.
func descriptors() (most int, ok bool) { return 0, false }
