package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/mcp/attach"
)

// openCommand is `luanette open`.
type openCommand struct {
	settingFlags
	tokenFlag
	serverFlag
	Print bool `help:"Print the link only."`
}

// Help is shown by `luanette open --help`.
func (openCommand) Help() string {
	return `Opens the web page of the server that runs on the data folder, or of the one that
--server names, in a browser. On a server without keys the link signs that browser in
as the owner of the machine, once. With keys it opens the page, which asks for one.`
}

// Run opens the page.
func (c *openCommand) Run(ctx context.Context, proc *process) error {
	address, err := c.where(ctx, proc)
	if err != nil {
		return err
	}
	link := address + "/"
	raw, err := client.Request(ctx, address, c.access(ctx, proc, &c.settingFlags, address), http.MethodPost, "/api/v1/owner/link", nil)
	if err == nil {
		var made struct{ Path string }
		if err = json.Unmarshal(raw, &made); err == nil {
			link = address + made.Path
		}
	}
	if code := fault.CodeOf(err); err != nil && code != fault.NeedsAuth && code != fault.Denied { // with a key it is not by a link
		return err
	}
	fmt.Fprintln(proc.Stdout, link)
	if c.Print {
		return nil
	}
	return startBrowser(ctx, proc, link)
}

// where is the address of the server.
func (c *openCommand) where(ctx context.Context, proc *process) (string, error) {
	if c.Server != "" {
		return strings.TrimRight(c.Server, "/"), nil
	}
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return "", err
	}
	running, err := attach.Find(ctx, placeOf(loaded, proc.Env), true)
	if err != nil || running.URL == "" {
		return "", fault.New(fault.Unavailable, "no server runs on the data folder %s", loaded.Data).WithHint("start one with `luanette serve`, or name one with --server URL")
	}
	return running.URL, nil
}

// startBrowser opens a link, if this machine has a browser. The link was printed already.
func startBrowser(ctx context.Context, proc *process, link string) error {
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	path, missing := exec.LookPath(opener[0])
	if missing != nil {
		fmt.Fprintln(proc.Stderr, "open this link in a browser on this machine")
		return nil //nolint:nilerr // the link was printed
	}
	return exec.CommandContext(ctx, path, append(opener[1:], link)...).Run()
}
