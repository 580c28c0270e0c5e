package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"io"
)

// The parts of CycloneDX 1.6 that are written.
type (
	bom struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
	}
)

// sbom writes which modules a binary was built from, as the binary itself says.
func (r *release) sbom(_ context.Context, p platform) error {
	info, err := buildinfo.ReadFile(r.binary(p))
	if err != nil {
		return err
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{moduleOf("application", info.Main.Path, r.version)}}
	b.Components = append(b.Components, moduleOf("library", "stdlib", info.GoVersion))
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		b.Components = append(b.Components, moduleOf("library", dep.Path, dep.Version))
	}
	return create(r.path(r.name(p, ".cdx.json")), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(b)
	})
}

func moduleOf(kind, path, version string) component {
	url := "pkg:golang/" + path + "@" + version
	return component{kind, url, path, version, url}
}
