package install

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// RequireJava fails when there is no Java 17 or later on the path.
func RequireJava(ctx context.Context) error {
	const need = "what runs here needs Java 17 or later, such as Debian's openjdk-17-jre-headless"
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w", need, err)
	}
	m := javaVersion.FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("which Java is this? %s", out)
	}
	if n, err := strconv.Atoi(string(m[1])); err != nil || n < 17 {
		return fmt.Errorf("%s; this is %s", need, m[1])
	}
	return nil
}
