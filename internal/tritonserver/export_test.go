package tritonserver

// Name is how the server's shared memory begins.
func (s *Server) Name() string { return s.name }

// Folder is where it keeps everything else.
func (s *Server) Folder() string { return s.folder }
