package telemetry

import "time"

// ShutDownPatiently is how long Shutdown lets a collector take.
func ShutDownPatiently(patience time.Duration) { shutdownLimit = patience }
