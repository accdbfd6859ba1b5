"""The client's side of the proxy: its messages as raw JSON, over stdio or Streamable HTTP."""
