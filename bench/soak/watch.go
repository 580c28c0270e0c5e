package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// window is the length of the parts of a run whose averages are compared.
const window = time.Minute

// interval is the time between two readings.
const interval = 5 * time.Second

// watched are the metrics that may not grow.
var watched = []string{"process_memory_usage_bytes", "go_goroutine_count", "process_open_file_descriptor_count"}

// reading is the values of the watched metrics at a time.
type reading struct {
	at     time.Duration // since the start
	values map[string]float64
}

// watch reads the metrics until ctx ends, and prints them with what was done, once a
// minute.
func watch(ctx context.Context, url string, report func() string) (all []reading) {
	began := time.Now()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return all
		case <-ticker.C:
		}
		text, err := get(ctx, url+"/metrics")
		if err != nil {
			continue // compare fails if that happens often
		}
		r := reading{time.Since(began), values(text)}
		all = append(all, r)
		if n%int(window/interval) == 0 {
			fmt.Printf("%5.1f min  %6.1f MB  %5.0f goroutines  %4.0f files  %s\n", r.at.Minutes(), r.values[watched[0]]/1e6, r.values[watched[1]], r.values[watched[2]], report())
		}
	}
}

func values(text string) map[string]float64 {
	found := map[string]float64{}
	for _, name := range watched {
		if m := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`).FindStringSubmatch(text); m != nil {
			found[name], _ = strconv.ParseFloat(m[1], 64) // Prometheus writes numbers
		}
	}
	return found
}

// compare fails if the average of the last minute exceeds that of the first minute after
// the warm-up by more than 10 %. A few goroutines and files more are no leak.
func compare(all []reading, warmup time.Duration) error {
	if len(all) == 0 || all[len(all)-1].at < warmup+2*window {
		return errors.New("too few readings: the server did not answer, or the run was stopped")
	}
	end := all[len(all)-1].at
	var errs []error
	for _, name := range watched {
		first, last := average(all, name, warmup, warmup+window), average(all, name, end-window, end)
		fmt.Printf("%s: %.0f after %v, %.0f in the last minute (%+.1f %%)\n", name, first, warmup, last, (last/first-1)*100)
		if first == 0 || last > first*1.1+20 {
			errs = append(errs, fmt.Errorf("%s grew from %.0f to %.0f", name, first, last))
		}
	}
	return errors.Join(errs...)
}

func average(all []reading, name string, from, to time.Duration) float64 {
	var list []float64
	for _, r := range all {
		if r.at >= from && r.at <= to {
			list = append(list, r.values[name])
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)/2]
}

func get(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(text), err
}
