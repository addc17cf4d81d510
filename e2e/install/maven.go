package install

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repositoryVariable names a Maven repository to take instead of Maven's own.
const repositoryVariable = "LAKEWEIR_MAVEN_REPOSITORY"

// repository is the URL of the Maven repository that this machine takes artifacts
// from: that of the environment, the mirror in Maven's settings, else what Maven
// itself has built in.
func repository() (string, error) {
	if url := os.Getenv(repositoryVariable); url != "" {
		return strings.TrimSuffix(url, "/"), nil
	}
	home, homeErr := mavenHome()
	var settings []string
	if user, err := os.UserHomeDir(); err == nil {
		settings = append(settings, filepath.Join(user, ".m2", "settings.xml"))
	}
	if homeErr == nil {
		settings = append(settings, filepath.Join(home, "conf", "settings.xml"))
	}
	for _, file := range settings {
		url, err := mirror(file)
		if err != nil || url != "" {
			return strings.TrimSuffix(url, "/"), err
		}
	}
	if homeErr != nil {
		return "", fmt.Errorf("install Maven, or name a Maven repository in %s: %w", repositoryVariable, homeErr)
	}
	url, err := builtIn(home)
	return strings.TrimSuffix(url, "/"), err
}

func mavenHome() (string, error) {
	bin, err := exec.LookPath("mvn")
	if err != nil {
		return "", err
	}
	if bin, err = filepath.EvalSymlinks(bin); err != nil {
		return "", err
	}
	return filepath.Dir(filepath.Dir(bin)), nil
}

// mirror is the mirror of all repositories, or of the central one, in a settings
// file; empty when there is none.
func mirror(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var settings struct {
		Mirrors []struct {
			Of  string `xml:"mirrorOf"`
			URL string `xml:"url"`
		} `xml:"mirrors>mirror"`
	}
	if err := xml.Unmarshal(text, &settings); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	for _, m := range settings.Mirrors {
		if m.Of == "*" || m.Of == "central" {
			return strings.TrimSpace(m.URL), nil
		}
	}
	return "", nil
}

// builtIn is the repository in the project model that every Maven project inherits.
func builtIn(home string) (string, error) {
	jars, err := filepath.Glob(filepath.Join(home, "lib", "maven-model-builder-*.jar"))
	if err != nil || len(jars) == 0 {
		return "", fmt.Errorf("the libraries of Maven are not in %s; name a Maven repository in %s", home, repositoryVariable)
	}
	jar, err := zip.OpenReader(jars[0])
	if err != nil {
		return "", err
	}
	defer jar.Close()
	f, err := jar.Open("org/apache/maven/model/pom-4.0.0.xml")
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	var model struct {
		URLs []string `xml:"repositories>repository>url"`
	}
	if err := xml.Unmarshal(text, &model); err != nil {
		return "", err
	}
	if len(model.URLs) == 0 {
		return "", fmt.Errorf("the Maven in %s names no repository; name one in %s", home, repositoryVariable)
	}
	return model.URLs[0], nil
}
