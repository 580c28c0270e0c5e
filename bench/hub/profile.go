package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// profile writes what the hub spends CPU on, and what it allocates, while the rows that
// it serves are called.
func (l load) profile(ctx context.Context, hub *process, rows []row, file string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	profiles := "http://" + profileAddress(strings.TrimPrefix(hub.url, "http://"))
	called := make(chan error, 1)
	seconds := max(1, int(l.length.Seconds()))
	go func() {
		for end := time.Now().Add(time.Duration(seconds+1) * time.Second); time.Now().Before(end); {
			for _, r := range rows {
				if r.server != hub {
					continue
				}
				if _, err := r.measure(ctx, l.counts[0], time.Second); err != nil {
					called <- err
					return
				}
			}
		}
		called <- nil
	}()
	err := save(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", profiles, seconds), file)
	return errors.Join(err, save(ctx, profiles+"/debug/pprof/allocs", file+".allocs"), <-called)
}

func save(ctx context.Context, url, file string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
