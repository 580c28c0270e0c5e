package telemetry

import "time"

// SetShutdownLimit is how long Shutdown lets a collector take.
func SetShutdownLimit(limit time.Duration) { shutdownLimit = limit }
