package stack

import "strings"

// javaOptions keep a service small and quick to start: its work here does not pay
// for the second compiler.
var javaOptions = []string{"-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.showDateTime=true"}

// java is the command line of a main class.
func java(heap string, jars []string, options ...string) []string {
	argv := append([]string{"java", "-Xmx" + heap}, javaOptions...)
	return append(append(argv, "-cp", strings.Join(jars, ":")), options...)
}
