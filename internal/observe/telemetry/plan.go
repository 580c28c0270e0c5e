package telemetry

import (
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// signal is one of the three exported signals, with the names that differ between
// them.
type signal struct {
	env  string // as in OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
	path string // path at HTTP collectors
}

var (
	traces  = signal{"TRACES", "v1/traces"}
	metrics = signal{"METRICS", "v1/metrics"}
	logs    = signal{"LOGS", "v1/logs"}
)

// plan says how each signal is exported.
type plan struct {
	traces, metrics, logs route
}

// route is how one signal is exported. The zero value means not at all.
type route struct {
	protocol string // "grpc", "http/protobuf" or "" for none
	endpoint string // a URL, or "" where the exporter reads the OTEL_* variables itself
}

func (r route) none() bool { return r.protocol == "" }

// planExport decides by the endpoint and the OTEL_* variables. The exporters read most
// variables themselves; this function reads only those that select the exporter. (The
// contrib package for this can write to standard output, which is reserved for
// protocols, and reports errors globally.)
func planExport(endpoint string) (p plan, err error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return plan{}, nil
	}
	for s, r := range map[signal]*route{traces: &p.traces, metrics: &p.metrics, logs: &p.logs} {
		if *r, err = routeOf(s, endpoint); err != nil {
			return plan{}, err
		}
	}
	return p, nil
}

func routeOf(s signal, endpoint string) (route, error) {
	chosen, err := chosenExporter(s, endpoint)
	if err != nil || !chosen {
		return route{}, err
	}
	protocol, variable := protocolOf(s)
	if endpoint != "" {
		base, guess, err := parseEndpoint(endpoint)
		if err != nil {
			return route{}, err
		}
		if protocol == "" {
			protocol = guess
		}
		endpoint = base.String()
		if protocol != "grpc" {
			endpoint = base.JoinPath(s.path).String()
		}
	}
	switch protocol {
	case "":
		protocol = "http/protobuf" // the specification's default
	case "grpc", "http/protobuf":
	default:
		return route{}, fault.New(fault.Config, "%s: unknown protocol %q", variable, protocol).
			WithHint("use grpc or http/protobuf")
	}
	return route{protocol: protocol, endpoint: endpoint}, nil
}

// chosenExporter reports whether s is exported: if its exporter is set, or, if none is
// set, whether there is an endpoint.
func chosenExporter(s signal, endpoint string) (bool, error) {
	variable := "OTEL_" + s.env + "_EXPORTER"
	switch name := env(variable); name {
	case "otlp":
		return true, nil
	case "none":
		return false, nil
	case "":
		return endpoint != "" || env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
			env("OTEL_EXPORTER_OTLP_"+s.env+"_ENDPOINT") != "", nil
	default:
		return false, fault.New(fault.Config, "%s: unknown exporter %q", variable, name).
			WithHint("use otlp or none; standard output is reserved for protocols, so there is no console exporter")
	}
}

// protocolOf returns the protocol that a variable sets, if any, and the variable.
func protocolOf(s signal) (protocol, variable string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + s.env + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := env(variable); protocol != "" {
			return protocol, variable
		}
	}
	return "", ""
}

// parseEndpoint parses Options.Endpoint. It returns the http or https URL, and the
// protocol that the endpoint implies.
func parseEndpoint(endpoint string) (base *url.URL, protocol string, err error) {
	text := endpoint
	if !strings.Contains(text, "://") {
		text = "grpc://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, "", badEndpoint(endpoint)
	}
	switch u.Scheme {
	case "grpc":
		u.Scheme = "http"
		protocol = "grpc"
	case "http", "https":
		protocol = "http/protobuf"
	default:
		return nil, "", badEndpoint(endpoint)
	}
	if u.Port() == "4317" {
		protocol = "grpc"
	}
	if u.Port() == "" && protocol == "grpc" {
		u.Host = net.JoinHostPort(u.Hostname(), "4317")
	}
	if _, err := url.Parse(u.String()); err != nil { // the host may still be invalid
		return nil, "", badEndpoint(endpoint)
	}
	return u, protocol, nil
}

func badEndpoint(endpoint string) error {
	return fault.New(fault.Config, "OTLP endpoint %q is not an address", endpoint).
		WithHint("use http://host:4318 for HTTP, or grpc://host:4317 for gRPC")
}

// env reads the environment of the process, because the exporters do. Reading it from
// elsewhere could give other values than theirs.
func env(name string) string { return os.Getenv(name) } //nolint:forbidigo // see above
