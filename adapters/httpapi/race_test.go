//go:build race

package httpapi

func init() { raceDetector = true }
