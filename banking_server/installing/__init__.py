"""This server in the configuration of other people's hosts: Claude Desktop, VS Code, and so on.

- `hosts`: where each host keeps its configuration, and what an entry of it looks like;
- `configuration`: one such file: what it holds, and what it would hold;
- `json_text`, `yaml_text`: one member changed in a text that is otherwise left as it is;
- `program`: the command that starts this server from anywhere on this machine;
- `replacing`: a file replaced whole or not at all, with the old one kept.
"""
