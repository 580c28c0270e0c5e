//go:build !linux || !(amd64 || arm64)

package httpserver

import "time"

func receivedAt(uintptr) (time.Time, bool) { return time.Time{}, false }
