package main

import (
	"context"

	"github.com/luanette/luanette/bench/calls"
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
		door, err := calls.FreeAddress()
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

// approveAll approves what the hub holds.
func approveAll(ctx context.Context, hub *process) error {
	for _, era := range eras {
		if err := calls.Approve(ctx, hub.mcp, era); err != nil {
			return err
		}
	}
	return nil
}
