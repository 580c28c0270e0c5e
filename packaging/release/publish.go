package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// bundle writes an .mcpb: a zip with the manifest and the binary. There is no key for the
// architecture, so there is one bundle for each.
func (r *release) bundle(_ context.Context, p platform) error {
	manifest, err := r.fill("packaging/mcpb/manifest.json", func(m map[string]any) {
		server := m["server"].(map[string]any)
		server["entry_point"] = "server/" + p.executable()
		server["mcp_config"].(map[string]any)["command"] = "${__dirname}/server/" + p.executable()
		system, _ := p.npmPlatform()
		m["compatibility"].(map[string]any)["platforms"] = []string{system}
	})
	if err != nil {
		return err
	}
	return writeZip(r.path(r.name(p, ".mcpb")), []file{
		{name: "manifest.json", mode: 0o644, data: manifest},
		{name: "server/" + p.executable(), from: r.binary(p), mode: 0o755},
	})
}

// serverJSON writes what the MCP registry publishes: the npm package and the bundles.
func (r *release) serverJSON(context.Context) error {
	var failed error
	data, err := r.fill("packaging/server.json", func(m map[string]any) {
		packages := m["packages"].([]any)
		for _, p := range packages {
			p.(map[string]any)["version"] = r.version
		}
		for _, p := range r.list {
			sum, err := sha256Of(r.path(r.name(p, ".mcpb")))
			if err != nil {
				failed = err
			}
			packages = append(packages, map[string]any{
				"registryType": "mcpb", "identifier": r.download(p, ".mcpb"), "version": r.version,
				"fileSha256": sum, "transport": map[string]any{"type": "stdio"},
			})
		}
		m["packages"] = packages
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return os.WriteFile(r.path("server.json"), data, 0o644)
}

// fill reads a JSON file and sets its version and more.
func (r *release) fill(path string, change func(map[string]any)) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m["version"] = r.version
	change(m)
	return json.MarshalIndent(m, "", "  ")
}

// download is where a file of the release can be had.
func (r *release) download(p platform, ending string) string {
	return "https://github.com/luanette/luanette/releases/download/v" + r.version + "/" + r.name(p, ending)
}

// formula writes a Homebrew formula that installs the archives.
func (r *release) formula(context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, `class Luanette < Formula
  desc "One server in front of all your MCP servers"
  homepage "https://github.com/luanette/luanette"
  version %q
  license "Apache-2.0"
`, r.version)
	for _, p := range r.list {
		if p.os == "windows" {
			continue
		}
		sum, err := sha256Of(r.path(r.name(p, ".tar.gz")))
		if err != nil {
			return err
		}
		on := map[string]string{"darwin": "macos", "linux": "linux", "amd64": "intel", "arm64": "arm"}
		fmt.Fprintf(&b, "\n  on_%s do\n    on_%s do\n      url %q\n      sha256 %q\n    end\n  end\n", on[p.os], on[p.arch], r.download(p, ".tar.gz"), sum)
	}
	b.WriteString(`
  def install
    bin.install "luanette"
    generate_completions_from_executable(bin/"luanette", "completion", shells: [:bash, :zsh, :fish])
  end

  service do
    run [opt_bin/"luanette", "serve"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/luanette --version")
  end
end
`)
	return os.WriteFile(r.path("luanette.rb"), []byte(b.String()), 0o644)
}
