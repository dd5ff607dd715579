import sys, netra_bridge  # noqa: E401, I001  # `import bridge` is `import netra_bridge`
sys.modules[__name__] = netra_bridge
