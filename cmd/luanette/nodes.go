package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/cluster/node"
)

// nodesCommand is `luanette nodes`.
type nodesCommand struct {
	settingFlags
	JSON bool `help:"Print JSON for programs."`
}

// Help is shown by `luanette nodes --help`.
func (nodesCommand) Help() string {
	return `Reads the database itself, so it needs no running server: --database names it. A
clock that is off the database's by more than two seconds is worth mending.`
}

// Run lists the nodes.
func (c *nodesCommand) Run(ctx context.Context, world *process) error {
	loaded, err := c.load(world, nil)
	if err != nil {
		return err
	}
	list, err := client.Nodes(ctx, loaded, world.Env)
	if err != nil {
		return err
	}
	if c.JSON {
		encoder := json.NewEncoder(world.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	}
	if len(list) == 0 {
		fmt.Fprintln(world.Stdout, "no server is running on this database")
		return nil
	}
	out := tabwriter.NewWriter(world.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "NAME\tSTATE\tADDRESS\tVERSION\tSTARTED\tCLOCK\tCALLS/MIN\tJOBS\tSESSIONS\tMEMORY")
	for _, n := range list {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%+.1fs\t%s\n", n.Name, n.State, n.Address, n.Version, n.Started.Format(time.RFC3339), n.Skew.Seconds(), loadOf(n))
	}
	return out.Flush()
}

// loadOf is how much a node has to do; one of an older version does not tell.
func loadOf(n node.Info) string {
	var load struct {
		Calls    int `json:"calls_per_minute"`
		Jobs     int `json:"jobs"`
		Sessions int `json:"sessions"`
		Memory   int `json:"memory_mb"`
	}
	if json.Unmarshal(n.Load, &load) != nil {
		return "-\t-\t-\t-"
	}
	return fmt.Sprintf("%d\t%d\t%d\t%d MB", load.Calls, load.Jobs, load.Sessions, load.Memory)
}
