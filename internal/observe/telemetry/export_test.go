package telemetry

import "time"

// SetShutdownLimit sets how long Shutdown waits for a collector.
func SetShutdownLimit(limit time.Duration) { shutdownLimit = limit }
