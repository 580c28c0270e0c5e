package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/luanette/luanette/internal/config/clientfile"
)

// clients reports the MCP clients in which luanette is installed, and whether they find it.
func (d *doctor) clients(context.Context) {
	folder, err := os.Getwd()
	if err != nil {
		d.failed("clients", err)
		return
	}
	system := clientfile.System{
		OS: runtime.GOOS, Home: cmp.Or(d.Env["HOME"], d.Env["USERPROFILE"]), Dir: folder,
		Getenv: func(name string) string { return d.Env[name] },
	}
	installed := false
	for _, found := range clientfile.Discover(system, clientfile.Clients) {
		if found.Err != nil {
			d.report(Finding{"client " + found.Client.Name, Warning, fmt.Sprintf("%s cannot be read: %v", found.Path, found.Err), "repair the file; the client may not read it either"})
			continue
		}
		for _, server := range found.Servers {
			if server.Ours() {
				installed = true
				d.client(found.File, server)
			}
		}
	}
	if !installed {
		d.report(Finding{"clients", Note, "installed in no client; `luanette install` lists those on this machine", ""})
	}
}

// client checks one entry of a client.
func (d *doctor) client(file clientfile.File, server clientfile.Server) {
	check, command := "client "+file.Client.Name, server.Spec.Command
	fix := "write the whole path of luanette into the file, or remove the entry and type: luanette install " + file.Client.Name
	switch {
	case command == "":
		d.ok(check, "%s: %s", file.Path, server.Spec.Target())
	case filepath.IsAbs(command) && !isProgram(command):
		d.report(Finding{check, Problem, fmt.Sprintf("%s starts %s, which is no program", file.Path, command), fix})
	case !filepath.IsAbs(command) && d.lookPath(command) == "":
		d.report(Finding{check, Problem, fmt.Sprintf("%s starts %s, which is not in PATH", file.Path, command), fix})
	case !filepath.IsAbs(command) && file.Client.Desktop:
		d.report(Finding{check, Warning, fmt.Sprintf("%s starts %s without its path, and %s may have another PATH than your shell", file.Path, command, file.Client.Title), fix})
	default:
		d.ok(check, "%s: %s", file.Path, server.Spec.Target())
	}
}

// isProgram reports whether a path is that of a program.
func isProgram(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}
