package otlptest

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"

	collectlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// The three services, for gRPC and for HTTP.

type traceService struct {
	collecttraces.UnimplementedTraceServiceServer
	*Sink
}

func (s traceService) Export(_ context.Context, r *collecttraces.ExportTraceServiceRequest) (*collecttraces.ExportTraceServiceResponse, error) {
	s.add(spansOf(r.GetResourceSpans()), nil, nil)
	return &collecttraces.ExportTraceServiceResponse{}, nil
}

type metricService struct {
	collectmetrics.UnimplementedMetricsServiceServer
	*Sink
}

func (s metricService) Export(_ context.Context, r *collectmetrics.ExportMetricsServiceRequest) (*collectmetrics.ExportMetricsServiceResponse, error) {
	s.add(nil, metricsOf(r.GetResourceMetrics()), nil)
	return &collectmetrics.ExportMetricsServiceResponse{}, nil
}

type logService struct {
	collectlogs.UnimplementedLogsServiceServer
	*Sink
}

func (s logService) Export(_ context.Context, r *collectlogs.ExportLogsServiceRequest) (*collectlogs.ExportLogsServiceResponse, error) {
	s.add(nil, nil, logsOf(r.GetResourceLogs()))
	return &collectlogs.ExportLogsServiceResponse{}, nil
}

func (s *Sink) register(server *grpc.Server) {
	collecttraces.RegisterTraceServiceServer(server, traceService{Sink: s})
	collectmetrics.RegisterMetricsServiceServer(server, metricService{Sink: s})
	collectlogs.RegisterLogsServiceServer(server, logService{Sink: s})
}

func (s *Sink) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/traces", receive(traceService{Sink: s}.Export))
	mux.Handle("POST /v1/metrics", receive(metricService{Sink: s}.Export))
	mux.Handle("POST /v1/logs", receive(logService{Sink: s}.Export))
	return mux
}

// message is a protobuf message whose pointer is P.
type message[T any] interface {
	*T
	proto.Message
}

// receive returns an HTTP handler of a service's one method.
func receive[T any, P message[T], R proto.Message](export func(context.Context, P) (R, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := P(new(T))
		if err := decode(r, request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := export(r.Context(), request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		raw, err := proto.Marshal(answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(raw) // the client may have disconnected
	})
}

func decode(r *http.Request, into proto.Message) error {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, into)
}
