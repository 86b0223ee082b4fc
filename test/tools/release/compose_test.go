package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// composition has the parts of compose.yaml that these tests read.
type composition struct {
	Services map[string]service
	Configs  map[string]struct{ Content string }
	Networks map[string]any
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       string
	User        string
	Entrypoint  []string
	Command     []string
	Environment map[string]string
	Ports       []string
	Networks    []string
	Volumes     []string
	Configs     []struct{ Source, Target string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Profiles    []string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
}

func composed(t *testing.T) composition {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "compose.yaml"))
	require.NoError(t, err)
	var c composition
	require.NoError(t, yaml.Unmarshal(content, &c))
	return c
}

func TestComposeIsValid(t *testing.T) {
	t.Parallel()
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() != nil {
		t.Skip("SKIPPED: no docker-compose on this machine; run: apt-get install docker-compose-plugin, from the packages of Docker")
	}
	_, err := run(t.Context(), root, nil, "docker", "compose", "--file", "compose.yaml", "config", "--quiet")
	require.NoError(t, err)
}

func TestComposeIsConfined(t *testing.T) {
	t.Parallel()
	c := composed(t)
	for name, s := range c.Services {
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.SecurityOpt, name)
		published := map[string][]string{"balancer": {"127.0.0.1:8443:8443"}, "sandbox": {"127.0.0.1:8444:8443"}, "prometheus": {"127.0.0.1:9091:9090"}, "grafana": {"127.0.0.1:3000:3000"}}
		require.Equal(t, published[name], s.Ports, "%s: only this machine reaches what is published, and the balancer reaches the rest", name)
		require.True(t, s.ReadOnly || len(s.Configs) > 0, "%s writes to volumes only", name)
		require.Equal(t, name == "migrate" || name == "sandbox", s.Build != "", "%s: two builds of one image get into each other's way", name)
		require.Equal(t, name == "secrets", s.User != "", "%s runs as its image's user", name)
		// Compose copies the content of a config into the container, which
		// fails where that is read-only.
		require.False(t, s.ReadOnly && len(s.Configs) > 0, name)
		for _, network := range s.Networks {
			require.Contains(t, c.Networks, network)
		}
		for _, volume := range s.Volumes {
			source, target, _ := strings.Cut(volume, ":")
			require.Contains(t, c.Volumes, source)
			if strings.HasPrefix(target, "/run/secrets") {
				require.Equal(t, "/run/secrets:ro", target)
			}
		}
		for needed := range s.DependsOn {
			require.Contains(t, c.Services, needed)
		}
	}
	require.Equal(t, c.Services["api1"], c.Services["api2"])
	require.NotEqual(t, c.Services["migrate"].Image, c.Services["sandbox"].Image, "each build has an image of its own")
	require.Equal(t, []string{"sandbox"}, c.Services["sandbox"].Profiles, "it starts only when it is asked for")
	require.Empty(t, c.Services["sandbox"].Networks, "it does not reach the bank's database")
}

// One caller must not use up the memory of a service, nor all connections of the balancer.
func TestComposeAndUnitLimitWhatACallerCanTake(t *testing.T) {
	t.Parallel()
	c := composed(t)
	for _, service := range []string{"api1", "sandbox"} {
		require.Equal(t, "900MiB", c.Services[service].Environment["GOMEMLIMIT"], service)
	}
	balancer := c.Configs[c.Services["balancer"].Configs[0].Source].Content
	require.Contains(t, balancer, "store conn_cur")
	require.Contains(t, balancer, "tcp-request connection reject if { sc_conn_cur(0) gt 2000 }")
	unit, err := os.ReadFile(filepath.Join(root, "cmd/bankingapi/bankingapi.service"))
	require.NoError(t, err)
	require.Contains(t, string(unit), "\nMemoryMax=1G\nEnvironment=GOMEMLIMIT=900MiB\n")
}

// image is what a Dockerfile tells the engine.
type image struct {
	environment                      []string
	entrypoint, command, healthcheck []string
	user                             string
}

func dockerfile(t *testing.T) image {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(content), -1)
	var i image
	list := func(text string) (words []string) {
		require.NoError(t, yaml.Unmarshal([]byte(text), &words), "%s is not in the form of a list: it would need a shell", text)
		return words
	}
	for line := range strings.Lines(stages[len(stages)-1]) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "ENV":
			i.environment = append(i.environment, strings.Fields(rest)...)
		case "USER":
			i.user = rest
		case "ENTRYPOINT":
			i.entrypoint = list(rest)
		case "CMD":
			i.command = list(rest)
		case "HEALTHCHECK":
			_, test, _ := strings.Cut(rest, "CMD ")
			i.healthcheck = list(test)
		}
	}
	return i
}

// The image of a release is that of the Dockerfile.
func TestImage(t *testing.T) {
	t.Parallel()
	s := settingsOf("1.0.0")
	require.Equal(t, image{
		environment: s.Env, entrypoint: s.Entrypoint, command: s.Cmd, healthcheck: s.Healthcheck.Test[1:], user: s.User,
	}, dockerfile(t))
}
