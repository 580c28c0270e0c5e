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
	JSON bool `help:"Print JSON."`
}

// Help is shown by `luanette nodes --help`.
func (nodesCommand) Help() string {
	return `The command reads the database, which --database names, so it needs no running
server. Correct a clock that differs from the database's by more than two seconds.`
}

// Run lists the nodes.
func (c *nodesCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return err
	}
	list, err := client.Nodes(ctx, loaded, proc.Env)
	if err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(proc.Stdout, "no server is running on this database")
		return nil
	}
	out := tabwriter.NewWriter(proc.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "NAME\tSTATE\tADDRESS\tVERSION\tSTARTED\tCLOCK\tCALLS/MIN\tJOBS\tSESSIONS\tMEMORY")
	for _, n := range list {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%+.1fs\t%s\n", n.Name, n.State, n.Address, n.Version, n.Started.Format(time.RFC3339), n.Skew.Seconds(), loadOf(n))
	}
	return out.Flush()
}

// loadOf returns the load of a node. Nodes of older versions do not report it.
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
