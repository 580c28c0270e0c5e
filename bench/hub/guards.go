package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// measureGuards puts a hub with all its guards beside one with none.
func measureGuards(ctx context.Context, l load, clients string) error {
	counts, err := parseCounts(clients)
	if err != nil {
		return err
	}
	far, err := start(ctx, "upstream")
	if err != nil {
		return err
	}
	defer far.stop()
	hubs := map[string]*process{}
	for _, guarded := range []string{"off", "on"} {
		door, err := freeAddress()
		if err != nil {
			return err
		}
		near, err := start(ctx, "hub", "-upstream", far.url+"/mcp", "-door", door, "-guarded", guarded)
		if err != nil {
			return err
		}
		defer near.stop()
		near.mcp = "http://" + door
		hubs[guarded] = near
	}
	if err := approveAll(ctx, hubs["on"]); err != nil {
		return err
	}
	var ways []way
	for _, guarded := range []string{"off", "on"} {
		ways = append(ways, way{"guards " + guarded + ", one server's endpoint", hubs[guarded], "/mcp/modern", "modern"})
	}
	return l.report(ctx, ways, counts)
}

// approveAll approves what the hub holds, once it has seen it.
func approveAll(ctx context.Context, hub *process) error {
	for _, era := range eras {
		for try := 0; ; try++ {
			body := strings.NewReader(fmt.Sprintf(`{"upstream":%q,"flagged":true}`, era))
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, hub.mcp+"/api/v1/pins/approve", body)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(r)
			if err == nil {
				_ = answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					break
				}
			}
			if try > 100 {
				return fmt.Errorf("nothing of %s came to be approved: %w", era, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}
