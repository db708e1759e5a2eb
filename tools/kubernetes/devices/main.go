// Command devices offers devices to the kubelet of the node that it runs on, as the plugin of a vendor does: they are counted, and
// handed out to pods by number. There is nothing behind them.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// registerWithin is how long the kubelet may take to answer.
const registerWithin = 30 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "devices: %v\n", err)
		os.Exit(1)
	}
}

// run offers devices until it is killed. It says "offered" once the kubelet knows of them.
func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: devices RESOURCE COUNT")
	}
	count, err := strconv.Atoi(arguments[1])
	if err != nil || count < 0 {
		return fmt.Errorf("%q is no number of devices", arguments[1])
	}
	endpoint := filepath.Base(arguments[0]) + ".sock"
	socket := filepath.Join(api.DevicePluginPath, endpoint)
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{count: count})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("call the kubelet: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), registerWithin)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{Version: api.Version, Endpoint: endpoint, ResourceName: arguments[0]})
	if err := errors.Join(err, connection.Close()); err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	fmt.Println("offered")
	return <-ended
}

// plugin answers the kubelet.
type plugin struct {
	api.UnimplementedDevicePluginServer
	count int
}

// GetDevicePluginOptions says that nothing is to be asked before a pod starts.
func (*plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch names the devices, which never change.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	var all []*api.Device
	for i := range p.count {
		all = append(all, &api.Device{ID: fmt.Sprintf("device-%d", i), Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: all}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate gives devices to a container, which gets nothing by them.
func (*plugin) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for range r.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{})
	}
	return answer, nil
}
