package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, path string, into any) string {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return string(text)
}

// TestReleaseIsSignedAndAttested checks that the parts of a release fit together: what
// GoReleaser signs and writes, what the workflow may do, attests and verifies, and what
// users are told.
func TestReleaseIsSignedAndAttested(t *testing.T) {
	t.Parallel()
	var config struct {
		Checksum struct {
			Name string `yaml:"name_template"`
		}
		DockerDigest struct {
			Name string `yaml:"name_template"`
		} `yaml:"docker_digest"`
		Builds []struct {
			Flags []string
			Time  string `yaml:"mod_timestamp"`
		}
		Signs []struct {
			Cmd, Artifacts, Signature string
			Args                      []string
		}
		DockerSigns []struct {
			Cmd  string
			Args []string
		} `yaml:"docker_signs"`
		SBOMs []struct{ Artifacts string } `yaml:"sboms"`
	}
	read(t, ".goreleaser.yaml", &config)
	if len(config.Signs) != 1 || config.Signs[0].Cmd != "cosign" || config.Signs[0].Artifacts != "checksum" || !slices.Contains(config.Signs[0].Args, "--bundle=${signature}") {
		t.Errorf("checksums are signed by %+v", config.Signs)
	}
	if len(config.DockerSigns) != 1 || !slices.Contains(config.DockerSigns[0].Args, "${artifact}@${digest}") {
		t.Errorf("images are signed by %+v", config.DockerSigns)
	}
	if len(config.SBOMs) == 0 || len(config.Builds) != 1 || config.Builds[0].Time == "" || !slices.Contains(config.Builds[0].Flags, "-trimpath") {
		t.Errorf("builds are %+v, lists of modules %+v", config.Builds, config.SBOMs)
	}

	var workflow struct {
		On          struct{ Push struct{ Tags []string } } `yaml:"on"`
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct {
				Uses, Run string
				With      map[string]any
			}
		}
	}
	read(t, ".github/workflows/release.yml", &workflow)
	job := workflow.Jobs["release"]
	if len(workflow.Permissions) != 0 || job.Permissions["id-token"] != "write" || job.Permissions["attestations"] != "write" || !slices.Equal(workflow.On.Push.Tags, []string{"v*"}) {
		t.Errorf("the workflow runs for %v with %v", workflow.On.Push.Tags, job.Permissions)
	}
	var attested, order []string
	verified := ""
	for _, step := range job.Steps {
		action, _, _ := strings.Cut(step.Uses, "@")
		order = append(order, action)
		if action == "actions/attest-build-provenance" {
			file, _ := step.With["subject-checksums"].(string)
			attested = append(attested, file)
		}
		verified += step.Run
	}
	if want := []string{"dist/" + config.Checksum.Name, "dist/" + config.DockerDigest.Name}; !slices.Equal(attested, want) {
		t.Errorf("attested are %q, GoReleaser writes %q", attested, want)
	}
	for _, tool := range []string{"sigstore/cosign-installer", "anchore/sbom-action/download-syft"} {
		if at := slices.Index(order, tool); at < 0 || at > slices.Index(order, "goreleaser/goreleaser-action") {
			t.Errorf("%s is not there when GoReleaser needs it: %q", tool, order)
		}
	}
	bundle := strings.ReplaceAll(config.Signs[0].Signature, "${artifact}", config.Checksum.Name)
	for place, text := range map[string]string{"the workflow": verified, "docs/releasing.md": read(t, "docs/releasing.md", nil)} {
		for _, part := range []string{"cosign verify-blob --bundle " + bundle, "gh attestation verify", "sha256sum --check"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not verify with %s", place, part)
			}
		}
	}
}
