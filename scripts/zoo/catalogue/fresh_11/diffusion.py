"""Denoisers and autoencoders: U-Nets with linear attention of images, signals and clips, one whose layers keep magnitudes, a
latent one with context; a codebook of an image's features."""
from ...entry import Entry
from ...inputs import also, floats, times


def _made(name, model, config, inputs, **more):
    return Entry(name, "diffusion", model, config, inputs, **more)


ENTRIES = [
    _made("pixel_unet", "denoising_diffusion_pytorch:Unet", dict(dim=16, dim_mults=(1, 2), channels=3, attn_dim_head=12, attn_heads=2, full_attn=(False, True)),
          also(floats(x=(3, 16, 20)), time=times(31.0, 412.0)), dtypes=("fp32",)),
    _made("magnitude_unet", "denoising_diffusion_pytorch:KarrasUnet", dict(image_size=16, dim=24, dim_max=48, channels=3, num_downsamples=1,
                                                                         num_blocks_per_stage=1, attn_res=(8,), attn_dim_head=12, dropout=0.0),
          also(floats(x=(3, 16, 16)), time=times(0.31, 0.72))),
    _made("signal_unet", "denoising_diffusion_pytorch:Unet1D", dict(dim=16, dim_mults=(1, 2), channels=5, attn_dim_head=12, attn_heads=2),
          also(floats(x=(5, 40)), time=times(31.0, 412.0)), dtypes=("fp32",)),
    _made("clip_unet", "video_diffusion_pytorch:Unet3D", dict(dim=16, dim_mults=(1, 2), channels=3, attn_heads=2, attn_dim_head=32, init_kernel_size=3),
          also(floats(x=(3, 4, 12, 16)), time=times(31.0, 412.0)), dtypes=("fp32",)),
    _made("latent_denoiser", "monai.networks.nets:DiffusionModelUNet",
          dict(spatial_dims=2, in_channels=4, out_channels=4, num_res_blocks=1, channels=(16, 24), attention_levels=(False, True), norm_num_groups=4, num_head_channels=12,
               with_conditioning=True, cross_attention_dim=20), also(floats(x=(4, 12, 16), context=(9, 20)), timesteps=times(31, 412))),
    _made("image_codebook", "nuwa_pytorch:VQGanVAE", dict(dim=16, image_size=24, num_layers=2, vq_codebook_dim=20, vq_codebook_size=37, attn_dim_head=12, attn_heads=2,
                                                        resnet_groups=4, use_vgg_and_gan=False), floats(img=(3, 24, 24)), dtypes=("fp32",)),
]
