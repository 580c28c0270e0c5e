package telemetry

import "time"

// SetShutdownLimit is how long Shutdown lets a collector take.
func SetShutdownLimit(patience time.Duration) { shutdownLimit = patience }
