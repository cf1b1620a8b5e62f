package tritonserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// rpcClient calls the few methods of Triton's gRPC service that are needed here. The
// HTTP side does not do: it cannot name models whose names need escapes. One call of
// gRPC is a POST of HTTP/2 with a message behind five bytes, and a status in the
// trailer, so that nothing but net/http is needed.
type rpcClient struct {
	base string
	http *http.Client
}

const (
	rpcService   = "/inference.GRPCInferenceService/"
	rpcFrame     = 5       // bytes before a message: compressed or not, and the length
	rpcSizeLimit = 1 << 26 // of an answer
)

func newRPCClient(address string) *rpcClient {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &rpcClient{base: "http://" + address + rpcService, http: &http.Client{Transport: &http.Transport{Protocols: protocols}}}
}

func (c *rpcClient) close() { c.http.CloseIdleConnections() }

// rpcError is a status of gRPC that is not OK.
type rpcError struct {
	Code    int
	Message string
}

func (e *rpcError) Error() string { return e.Message }

// call sends a message and gives the answer.
func (c *rpcClient) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	body := make([]byte, rpcFrame, rpcFrame+len(message))
	binary.BigEndian.PutUint32(body[1:], uint32(len(message)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+method, bytes.NewReader(append(body, message...)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, rpcSizeLimit))
	if err != nil {
		return nil, err
	}
	status, text := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message")
	if status == "" { // an answer without a body has them in the header
		status, text = response.Header.Get("Grpc-Status"), response.Header.Get("Grpc-Message")
	}
	code, err := strconv.Atoi(status)
	if err != nil {
		return nil, fmt.Errorf("%s: the answer has no status of gRPC (HTTP %s)", method, response.Status)
	}
	if code != 0 {
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return nil, &rpcError{code, text}
	}
	if len(answer) < rpcFrame {
		return nil, nil
	}
	return answer[rpcFrame:], nil
}

// Fields of the messages in use.
const (
	modelNameField   = 2 // of RepositoryModelLoadRequest and RepositoryModelUnloadRequest
	indexModelsField = 1 // of RepositoryIndexResponse
)

func modelRequest(model string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, modelNameField, protowire.BytesType), model)
}

// readIndex reads a RepositoryIndexResponse.
func readIndex(data []byte) (out []Entry, err error) {
	err = eachField(data, func(number protowire.Number, value []byte) error {
		if number != indexModelsField {
			return nil
		}
		var fields [5]string // name 1, version 2, state 3, reason 4
		err := eachField(value, func(number protowire.Number, value []byte) error {
			if int(number) < len(fields) {
				fields[number] = string(value)
			}
			return nil
		})
		out = append(out, Entry{Model: fields[1], Version: fields[2], State: fields[3], Reason: fields[4]})
		return err
	})
	return out, err
}

// eachField calls look for the fields of a message that hold bytes.
func eachField(data []byte, look func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return protowire.ParseError(n)
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if err := look(number, value); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}
