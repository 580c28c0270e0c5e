package main

import (
	"context"

	"github.com/luanette/luanette/bench/calls"
)

// measureGuards puts a hub with all its guards beside one with none.
func measureGuards(ctx context.Context, l load) error {
	far, err := start(ctx, "upstream")
	if err != nil {
		return err
	}
	defer far.stop()
	hubs := map[string]*process{}
	for _, guarded := range []string{"off", "on"} {
		near, err := startHub(ctx, far, "-guarded", guarded)
		if err != nil {
			return err
		}
		defer near.stop()
		hubs[guarded] = near
	}
	if err := approveAll(ctx, hubs["on"]); err != nil {
		return err
	}
	var ways []way
	for _, guarded := range []string{"off", "on"} {
		ways = append(ways, way{"guards " + guarded + ", one server's endpoint", hubs[guarded], "/mcp/modern", "modern"})
	}
	return l.report(ctx, ways)
}

// approveAll approves what the hub holds.
func approveAll(ctx context.Context, hub *process) error {
	for _, era := range eras {
		if err := calls.Approve(ctx, hub.mcp, era); err != nil {
			return err
		}
	}
	return nil
}
