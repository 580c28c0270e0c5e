// Command release builds everything that a release consists of into one folder: binaries,
// archives, Linux packages, a container image, npm packages, .mcpb bundles, a Homebrew
// formula, the registry's server.json, SBOMs and checksums. It needs Go and npm only. It
// runs in the root of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// release is a release in the making.
type release struct {
	version string // without v
	out     string // the folder
	list    []platform
}

func main() {
	version := flag.String("version", "0.0.0-snapshot", "version of the release")
	out := flag.String("out", "dist", "folder to write to; it is emptied")
	only := flag.String("only", "", "comma-separated platforms, such as linux/amd64; all when empty")
	flag.Parse()
	r := &release{version: strings.TrimPrefix(*version, "v"), out: *out}
	for _, p := range platforms {
		if *only == "" || strings.Contains(","+*only+",", ","+p.os+"/"+p.arch+",") {
			r.list = append(r.list, p)
		}
	}
	if err := r.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes all files, in the order in which they need each other.
func (r *release) run(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	steps := []struct {
		name string
		make func(context.Context, platform) error
	}{
		{"build", r.build},
		{"archive", r.archive},
		{"SBOM", r.sbom},
		{"Linux packages", r.linuxPackages},
		{"image", r.image},
		{"npm package", r.npmPackage},
		{"mcpb bundle", r.bundle},
	}
	for _, p := range r.list {
		for _, step := range steps {
			if err := step.make(ctx, p); err != nil {
				return fmt.Errorf("%s of %s/%s: %w", step.name, p.os, p.arch, err)
			}
		}
		fmt.Printf("%s/%s done\n", p.os, p.arch)
	}
	for name, make := range map[string]func(context.Context) error{
		"npm package": r.npmMain, "server.json": r.serverJSON, "formula": r.formula,
	} {
		if err := make(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return r.checksums()
}

// path returns the path of a file in the release's folder.
func (r *release) path(elements ...string) string {
	return filepath.Join(append([]string{r.out}, elements...)...)
}

// name returns the name of a file of a platform.
func (r *release) name(p platform, ending string) string {
	return "luanette_" + r.version + "_" + p.os + "_" + p.arch + ending
}

// binary returns the path of a platform's binary.
func (r *release) binary(p platform) string {
	return r.path("bin", p.os+"_"+p.arch, p.executable())
}

// executable returns the name of the binary.
func (p platform) executable() string {
	if p.os == "windows" {
		return "luanette.exe"
	}
	return "luanette"
}
