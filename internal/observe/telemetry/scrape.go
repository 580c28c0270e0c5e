package telemetry

import (
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
)

// addScraped makes the registry that Metrics shows, and the reader that fills it. Names
// follow OpenTelemetry's rules for Prometheus: mcp.server.operation.duration in seconds
// is mcp_server_operation_duration_seconds.
func (p *providers) addScraped() (sdkmetric.Reader, error) {
	p.scraped = prometheus.NewRegistry()
	return otelprometheus.New(otelprometheus.WithRegisterer(p.scraped), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
}

// Metrics shows the current values of all instruments to Prometheus, in the format that
// the request asks for, unless refuse returns an error. It is nil unless Options.Scrape
// is set.
//
// It is not promhttp, because that adds compression libraries to the binary.
func (t *Telemetry) Metrics(refuse func(*http.Request) error) http.Handler {
	if t.scraped == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := refuse(r); err != nil {
			httpjson.Error(w, http.StatusForbidden, err)
			return
		}
		families, err := t.scraped.Gather()
		if err != nil {
			httpjson.Error(w, http.StatusInternalServerError, fault.Wrap(fault.Internal, err, "read the metrics"))
			return
		}
		format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
		w.Header().Set("Content-Type", string(format))
		encoder := expfmt.NewEncoder(w, format)
		for _, family := range families {
			if encoder.Encode(family) != nil {
				return // the client is gone
			}
		}
		if end, ok := encoder.(io.Closer); ok {
			_ = end.Close() // the end mark of OpenMetrics
		}
	})
}
