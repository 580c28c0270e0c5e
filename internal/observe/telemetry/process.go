package telemetry

import (
	"context"
	"errors"
	"os"
	"runtime"
	gometrics "runtime/metrics"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observeProcess adds instruments for this process, by the semantic conventions for
// processes and the Go runtime. Memory as the system counts it and file descriptors are
// known only where there is /proc.
func observeProcess(m metric.Meter) error {
	began := time.Now()
	var errs [5]error
	_, errs[0] = m.Float64ObservableGauge("process.uptime", metric.WithUnit("s"), metric.WithDescription("The time the process has been running."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(time.Since(began).Seconds())
			return nil
		}))
	_, errs[1] = m.Int64ObservableUpDownCounter("go.goroutine.count", metric.WithUnit("{goroutine}"), metric.WithDescription("Count of live goroutines."),
		observed(func() (int64, bool) { return int64(runtime.NumGoroutine()), true }))
	_, errs[2] = m.Int64ObservableUpDownCounter("go.memory.used", metric.WithUnit("By"), metric.WithDescription("Memory used by the Go runtime."),
		metric.WithInt64Callback(observeMemory))
	_, errs[3] = m.Int64ObservableUpDownCounter("process.memory.usage", metric.WithUnit("By"), metric.WithDescription("The amount of physical memory in use."),
		observed(residentMemory))
	_, errs[4] = m.Int64ObservableUpDownCounter("process.open_file_descriptor.count", metric.WithUnit("{file_descriptor}"),
		metric.WithDescription("Number of file descriptors in use by the process."), observed(openFiles))
	return errors.Join(errs[:]...)
}

// observed makes a callback of a function that returns a value, or false if there is none.
func observed(read func() (int64, bool)) metric.Int64ObservableOption {
	return metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		if value, ok := read(); ok {
			o.Observe(value)
		}
		return nil
	})
}

var (
	stackMemory = metric.WithAttributeSet(attribute.NewSet(attribute.String("go.memory.type", "stack")))
	otherMemory = metric.WithAttributeSet(attribute.NewSet(attribute.String("go.memory.type", "other")))
)

// observeMemory tells stacks from the rest, as the conventions do. Memory that was
// returned to the system does not count.
func observeMemory(_ context.Context, o metric.Int64Observer) error {
	samples := []gometrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	gometrics.Read(samples)
	total, released, stacks := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	o.Observe(int64(stacks), stackMemory)                //nolint:gosec // far from the limit
	o.Observe(int64(total-released-stacks), otherMemory) //nolint:gosec // the same
	return nil
}

// residentMemory is the second number of /proc/self/statm, in pages.
func residentMemory() (int64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

func openFiles() (int64, bool) {
	folder, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer func() { _ = folder.Close() }()
	names, err := folder.Readdirnames(-1)
	return int64(len(names)), err == nil
}
