package config

// The values of telemetry.metrics.
const (
	MetricsAuto = "auto"
	metricsOn   = "on"
	metricsOff  = "off"
)

// ServesMetrics reports whether there is a /metrics for Prometheus. By default only
// programs on this machine can see it.
func (c *Config) ServesMetrics() bool {
	return c.Telemetry.Metrics == metricsOn || c.Telemetry.Metrics == MetricsAuto && ListensLocally(c.Listen)
}
