package stack

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"github.com/lakeweir/lakeweir/e2e/install"
)

// The S3 gateway is built from source: no registry has it as a program.
const (
	gatewayPackage = "github.com/versity/versitygw/cmd/versitygw"
	gatewayVersion = "v1.8.0"
)

// S3 is a gateway to a folder that speaks S3.
type S3 struct {
	*Process
	Endpoint  string
	Region    string
	AccessKey string
	SecretKey string
	Bucket    string // the only one
	// Folder holds the bucket's objects, each as a file of its name.
	Folder string
}

func newS3(ctx context.Context, dir string, told func(string, ...any)) (*S3, error) {
	bin, err := install.GoTool(ctx, gatewayPackage, gatewayVersion)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "s3", "data")
	s := &S3{Endpoint: "http://" + address(port), Region: "us-east-1", AccessKey: "lakeweir", SecretKey: "not-a-secret", Bucket: "lake"}
	s.Folder = filepath.Join(data, s.Bucket)
	// Attributes of objects lie beside them: not every file system holds them.
	attributes := filepath.Join(dir, "s3", "attributes")
	for _, folder := range []string{s.Folder, attributes} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return nil, err
		}
	}
	s.Process = &Process{
		Name: "s3", Log: filepath.Join(dir, "log", "s3.log"), told: told,
		argv: []string{bin, "--port", address(port), "--region", s.Region, "--quiet", "posix", "--sidecar", attributes, data},
		env:  []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey},
		ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(port))
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}
	return s, nil
}

// Env are the environment variables by which AWS clients find the gateway.
func (s *S3) Env() []string {
	return []string{"AWS_ENDPOINT_URL_S3=" + s.Endpoint, "AWS_REGION=" + s.Region, "AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey}
}

// Properties are what Iceberg's clients call the same, as PyIceberg and Spark have
// them.
func (s *S3) Properties() map[string]string {
	return map[string]string{
		"s3.endpoint": s.Endpoint, "s3.region": s.Region, "client.region": s.Region, "s3.path-style-access": "true",
		"s3.access-key-id": s.AccessKey, "s3.secret-access-key": s.SecretKey,
	}
}
