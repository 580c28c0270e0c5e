package main

import (
	"context"
	"io"
	"os"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// linuxPackages writes .deb and .rpm from packaging/nfpm.yaml.
func (r *release) linuxPackages(_ context.Context, p platform) error {
	if p.os != "linux" {
		return nil
	}
	values := map[string]string{"ARCH": p.arch, "VERSION": r.version, "BINARY": r.binary(p)}
	config, err := nfpm.ParseFileWithEnvMapping("packaging/nfpm.yaml", func(name string) string { return values[name] })
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		info, err := config.Get(format)
		if err != nil {
			return err
		}
		info = nfpm.WithDefaults(info)
		info.MTime = epoch
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		name := r.path(packager.ConventionalFileName(info))
		if err := create(name, func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			_ = os.Remove(name) // incomplete
			return err
		}
	}
	return nil
}
