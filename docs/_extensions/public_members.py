"""Select what the reference shows, and link names in docstrings and on pages to the reference."""

import inspect
import pkgutil

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode


def is_skipped(app, kind, name, member, skip, options):
    """Skip members that are deprecated, and those that a class inherits from other libraries."""
    function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
    if not inspect.isroutine(function):
        return skip
    if "deprecated" in (inspect.getdoc(function) or "").partition("\n")[0]:
        return True
    return skip or not str(getattr(function, "__module__", None)).startswith("agglo.")


def resolve_name(app, env, node, contnode):
    """Link a name in a docstring if it is the short name of a public object, and accept internal names as text."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    objects = env.domains["py"].objects
    found = [name for name in objects if name.endswith("." + target)]
    if found:
        page = objects[min(found, key=len)]
        return make_refnode(app.builder, node["refdoc"], page.docname, page.node_id, contnode, target)
    for name in (target, f"{node.get('py:module')}.{target}"):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError, ValueError):
            continue
        return contnode
    return None


class LinkPublicNames(SphinxPostTransform):
    """Link code such as `agglo.scc` and `Hierarchy` on a page to its page of the reference."""

    default_priority = 5

    def run(self, **kwargs):
        """Replace the literals."""
        domain = self.env.domains["py"]
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().partition("(")[0]
            page = domain.objects.get(name) or (name[:1].isupper() and domain.objects.get(f"agglo.{name}"))
            inside = literal.parent
            while inside is not None and not isinstance(inside, (nodes.reference, nodes.title, nodes.term)):
                inside = inside.parent
            if not page or inside is not None or page.docname == self.env.docname:
                continue
            link = make_refnode(
                self.app.builder, self.env.docname, page.docname, page.node_id, literal.deepcopy(), name
            )
            literal.parent.replace(literal, link)


def setup(app):
    """Register the extension."""
    app.connect("autodoc-skip-member", is_skipped)
    app.connect("missing-reference", resolve_name)
    app.add_post_transform(LinkPublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
