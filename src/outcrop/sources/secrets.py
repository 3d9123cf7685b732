"""Files that are likely to hold secrets: by their names, so that they are not even read, and by what they hold.

Better one harmless file too many than one key in an index: each is reported, and a setting brings it in.
"""

from __future__ import annotations

import re

_NAME = re.compile(
    r"""
    \.env(?:\..+|rc|-.+)? | .+\.env
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].*)? | ssh_host_.*_key
    | .+\.(?:pem|key|p12|pfx|p8|pkcs12|jks|keystore|kdbx?|ppk|gpg|pgp|ovpn|agilekeychain|keychain|keytab|jwk|der)
    | [._]?netrc | \.pgpass | \.my\.cnf | \.mylogin\.cnf | \.htpasswd | \.git-credentials | \.dockercfg
    | \.boto | \.s3cfg | \.vault-token | \.?vault_pass(?:word)?(?:\.txt)? | master\.key
    | \.terraformrc | terraform\.rc | .+\.tfstate(?:\..*)? | .+\.tfvars(?:\.json)?
    | (?:.+[._-])?(?:secrets?|credentials?)(?:[._-][\w-]+)?\.(?:ya?ml|json|toml|ini|env|properties|cfg|conf|txt)
    | (?:gcp|gcloud|google|firebase|service)[._-]?(?:account|key|credentials|adminsdk)(?:[._-].*)?\.json
    | client_secrets?.*\.json | kubeconfig(?:\.(?:ya?ml|json|conf))? | .+\.kubeconfig
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HARMLESS = re.compile(
    r"(?:^|[._-])(?:examples?|samples?|templates?|tmpl|tpl|dist|defaults?|schema|skeleton|stub|j2|jinja|erb|pub)(?:[._-]|$)",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?:^|/)(?:\.ssh/(?!config$|known_hosts)|\.gnupg/|\.aws/(?:credentials|sso/|cli/)|\.azure/"
    r"|\.kube/config$|\.docker/config\.json$"
    r"|\.config/(?:gh/hosts\.yml|gcloud/|rclone/|hub$)|\.password-store/|\.secrets?/|\.cargo/credentials(?:\.toml)?$"
    r"|\.gem/credentials$|\.m2/settings(?:-security)?\.xml$|\.terraform\.d/credentials)"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\s*?(?:\\n|\n)"
    r"(?:[^\n]{0,400}+\n){0,4}?[^\n]{0,40}?[A-Za-z0-9+/=]{40}"
    r"|^PuTTY-User-Key-File-\d|\bAGE-SECRET-KEY-1[A-Z0-9]{40}",
    re.MULTILINE,
)
_SERVICE_ACCOUNT = re.compile(r'"private_key"\s*:\s*"-----BEGIN')
_TOKENS = {
    ".npmrc": re.compile(r"_auth(?:Token)?\s*=\s*(?!\$\{)\S|_password\s*=\s*(?!\$\{)\S", re.IGNORECASE),
    ".yarnrc": re.compile(r"_auth(?:Token)?[\s\"'=:]+(?!\$\{)\S", re.IGNORECASE),
    ".yarnrc.yml": re.compile(r"npmAuth(?:Token|Ident)\s*:\s*[\"']?(?!\$\{)\S", re.IGNORECASE),
    ".pypirc": re.compile(r"^[^\S\n]*+password\s*[=:]\s*\S", re.IGNORECASE | re.MULTILINE),
    "pip.conf": re.compile(r"://[^\s/:@]+:[^\s/@]+@"),
    ".curlrc": re.compile(r"^[^\S\n]*+-?-?u(?:ser)?\b", re.MULTILINE),
    ".wgetrc": re.compile(r"password\s*=", re.IGNORECASE),
    "nuget.config": re.compile(r"ClearTextPassword", re.IGNORECASE),
    "token.json": re.compile(r'"refresh_token"\s*:\s*"'),
    "auth.json": re.compile(r'"(?:auth|token|password|github-oauth|http-basic)"\s*:', re.IGNORECASE),
}


def secret_by_name(path: str) -> str | None:
    """What kind of secret a file of this name usually holds, or None. The file itself is not looked at."""
    name = path.rpartition("/")[2]
    if _NAME.fullmatch(name) and not _HARMLESS.search(name):
        return f"named like one: {name}"
    if "/." in path or path.startswith("."):
        found = _PATH.search(path)
        if found:
            return f"in a credential store: {found[0].strip('/')}"
    return None


def secret_by_content(text: str, path: str) -> str | None:
    """What secret a text holds, or None: private keys with their bytes, service accounts, tokens of package managers.

    A mere mention of a key's first line, as in a parser's source, is not a key.
    """
    if "PRIVATE KEY" in text or "AGE-SECRET-KEY-1" in text or "PuTTY-User-Key-File" in text:
        if _SERVICE_ACCOUNT.search(text):
            return "holds a service account's key"
        found = _PRIVATE_KEY.search(text)
        if found:
            return f"holds a private key, line {text.count(chr(10), 0, found.start()) + 1}"
    tokens = _TOKENS.get(path.rpartition("/")[2].lower())
    return "holds a token" if tokens is not None and tokens.search(text) else None
